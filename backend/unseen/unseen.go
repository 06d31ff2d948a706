// Package unseen knows the characters that show nothing. It is the one table of them: what is compared without them, and
// what makes them visible, go by it (frontend/src/lib/visible.ts has the same).
package unseen

import (
	"strings"
	"unicode"
)

// Is says whether a character shows nothing: white space, controls and formats, what a font is told to ignore, what is
// assigned to nothing, and what is Blank.
func Is(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsGraphic(r) || Blank(r) ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Blank says whether a character shows nothing though its class is that of letters, marks or symbols: those that stand for
// an empty place, and those that only change a sign of their script before them.
func Blank(r rune) bool {
	switch r {
	case 0x034f, // combining grapheme joiner
		0x115f, 0x1160, 0x3164, 0xffa0, // fillers of Hangul
		0x17b4, 0x17b5, // inherent vowels of Khmer
		0x2800,                    // braille pattern blank
		0x2d7f,                    // consonant joiner of Tifinagh
		0x303f,                    // ideographic half fill space
		0xfffc,                    // in the place of an object
		0x13440, 0x13441, 0x13442, // mirror and blanks of hieroglyphs
		0x16fe4, // filler of Khitan
		0x1bc9d, // thick letter selector of Duployan
		0x1d159: // null notehead
		return true
	}
	return 0x1da9b <= r && r <= 0x1da9f || 0x1daa1 <= r && r <= 0x1daaf // fills and rotations of SignWriting
}

// All says whether a text shows nothing.
func All(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !Is(r) })
}
