package render

import "unicode"

// isPictograph is a wide reading of Unicode's Extended_Pictographic: the blocks emoji come from, including symbols that are none. It decides
// only whether a joiner or a selector beside such a character is in its place.
func isPictograph(r rune) bool {
	switch r {
	case 0xa9, 0xae, 0x203c, 0x2049, 0x2122, 0x2139, 0x24c2, 0x2934, 0x2935, 0x3030, 0x303d, 0x3297, 0x3299:
		return true
	}
	return 0x2190 <= r && r <= 0x21ff || 0x2300 <= r && r <= 0x23ff || 0x25a0 <= r && r <= 0x27bf || 0x2b00 <= r && r <= 0x2bff ||
		0x1f000 <= r && r <= 0x1faff
}

// joinsEmoji tells whether the joiner at i stands between two emoji, the first perhaps with its selector or skin tone.
func (t decoded) joinsEmoji(i int) bool {
	before := i - 1
	if t.at(before) == 0xfe0f {
		before--
	}
	return t.runes[i] == 0x200d && isPictograph(t.at(before)) && isPictograph(t.at(i+1))
}

// joinsLetters tells whether the joiner at i stands between letters of a script that is written with joiners.
func (t decoded) joinsLetters(i int) bool {
	return usesJoiners(t.at(i-1)) && usesJoiners(t.at(i+1))
}

func usesJoiners(r rune) bool {
	return r > 0x5ff && unicode.In(r, unicode.L, unicode.M) && unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko,
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
		unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar)
}

// selects tells whether the variation selector at i directly follows a character it has a meaning for.
func (t decoded) selects(i int) bool {
	r, base := t.runes[i], t.at(i-1)
	switch {
	case r == 0xfe0e || r == 0xfe0f:
		keycap := t.at(i+1) == 0x20e3 && (base == '#' || base == '*' || '0' <= base && base <= '9')
		return keycap || isPictograph(base)
	case r >= 0xe0100 || r <= 0xfe0f && r >= 0xfe00:
		return base > 0 && unicode.Is(unicode.Han, base)
	default:
		return base > 0 && unicode.Is(unicode.Mongolian, base) && unicode.IsLetter(base)
	}
}

// inFlag tells whether the tag character at i belongs to the flag of a region: a black flag, three to six tag letters or digits, and the
// tag that ends them.
func (t decoded) inFlag(i int) bool {
	const flag, end = 0x1f3f4, 0xe007f
	start := i
	for start > 0 && i-start < 8 && isTag(t.runes[start]) {
		start--
	}
	if t.at(start) != flag {
		return false
	}
	last := start + 1
	for isTag(t.at(last)) && t.at(last) != end && last-start <= 7 {
		last++
	}
	n := last - start - 1
	return t.at(last) == end && 3 <= n && n <= 6 && i <= last
}

func isTag(r rune) bool {
	return 0xe0030 <= r && r <= 0xe0039 || 0xe0061 <= r && r <= 0xe007a || r == 0xe007f
}
