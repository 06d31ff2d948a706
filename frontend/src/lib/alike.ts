// Letters that pass for plain Latin ones, each followed by the one it passes for: those of backend/render/alike.go, and the dotless i, which
// is a letter of its own in Turkish and nothing to be marked.
const pairs = [...'ɑaɡgɩiɪIʏYʀRʜHʟLɢGʙBɴNᴀAᴄcᴅDᴇEᴊJᴋKᴍMᴏoᴘPᴛTᴜuᴠvᴡwᴢzꜱsꜰFⅰiⅴvⅹxⅼlⅽcⅾdⅿmⅠIⅤVⅩXⅬLⅭCⅮDⅯMℓl\u212aKаaеeоoрpсcуyхxіiјjѕsԁdһhӏlԛqԝwѵvкkгrАAВBЕEІIЈJКKМMНHОOРPСCЅSТTУYХXԚQԜWѴVӀIЁËёëїïҮYүyԌGЗ3Ӡ3ЬbҺhαaνvοoρpιiκkυuϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹCϺMͿJϜFϾCͼcօoոnսuհhԼLՍUՏSՕOցgգqզqյjաwıi'];
const plainFor = new Map(pairs.flatMap((c, i) => (i % 2 === 0 ? [[c, pairs[i + 1] as string] as const] : [])));

/** A text as it looks at a glance: whatever passes for a plain letter is that letter. */
export const skeleton = (s: string): string => [...s].map((c) => plainFor.get(c) ?? c).join('');
