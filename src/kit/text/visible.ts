/**
 * Keeps characters of strangers from terminals, tables and pages that nobody can see, or that act upon what stands around them.
 * These are:
 *
 *   - all of Unicode's class C: control characters (C0 and C1), format characters (marks of direction, U+200B, the tags of
 *     U+E0041), halves of pairs, private and unassigned characters, for which a font may have nothing to show;
 *   - separators of lines and paragraphs, which would begin a line of their own;
 *   - all that Unicode lets a font ignore, such as the fillers U+115F and U+3164, and variation selectors, which can carry any
 *     bytes;
 *   - the few that show nothing and are in none of these classes, such as U+2800, a pattern of Braille without a dot.
 *
 * Blanks of any width become usual ones. The first 16 variation selectors are dropped, because most emoji of messages have
 * one, and a mark behind each would say nothing. Pure, and linear: each expression is one character.
 */

const unseen = /[\u{16fe4}\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]/gu
const wideBlank = /\p{Zs}/gu
const selector = /[\ufe00-\ufe0f]/g
const unseenOrWide =
  /(?![\t\n\r ])[\u{16fe4}\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc\u{1d159}]/gu

/** Returns the text with a mark in place of each of these characters. By default, the mark also stands for invalid UTF-8. */
export function visible(text: string, mark = '\ufffd'): string {
  return text.replaceAll(selector, '').replaceAll(unseen, mark).replaceAll(wideBlank, ' ')
}

/** Returns JSON of the same value in which these characters are escaped, but for blanks and line ends between its tokens. */
export function visibleJson(json: string): string {
  return json.replaceAll(unseenOrWide, escaped)
}

/** A character outside the basic plane is two units. */
function escaped(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
