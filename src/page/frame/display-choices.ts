/**
 * What the reader has chosen about how the page looks, which this browser keeps: the theme, and the time zone of moments. A browser
 * that keeps nothing, or something else, has the defaults.
 */
import { showZone, shownZones } from '../elements/browser-clock.ts'

/** The values of each choice, the default first. */
export const displayChoices = {
  theme: ['system', 'light', 'dark'],
  times: shownZones,
} as const

export type DisplayChoice = keyof typeof displayChoices
export type DisplayValue<Choice extends DisplayChoice> = (typeof displayChoices)[Choice][number]

/** Returns what is chosen. */
export function displayValue<Choice extends DisplayChoice>(choice: Choice): DisplayValue<Choice> {
  const values: readonly DisplayValue<Choice>[] = displayChoices[choice]
  const kept = keptValue(choice)
  return values.find((value) => value === kept) ?? displayChoices[choice][0]
}

/** Keeps a choice, and follows it. */
export function chooseDisplay(choice: DisplayChoice, value: string): void {
  try {
    localStorage.setItem(nameOf(choice), value)
  } catch {
    // It holds until the page is loaded again.
  }
  applyDisplay({ [choice]: value })
}

/**
 * Follows the choices. The style knows a theme by the attribute `data-theme` of the root.
 *
 * @param now - what was chosen just now, which may not be kept
 */
export function applyDisplay(now: Readonly<Partial<Record<DisplayChoice, string>>> = {}): void {
  const theme = now.theme ?? displayValue('theme')
  const root = document.documentElement
  if (theme === 'system') delete root.dataset['theme']
  else root.dataset['theme'] = theme
  showZone((now.times ?? displayValue('times')) === 'utc' ? 'utc' : 'local')
}

function keptValue(choice: DisplayChoice): string | null {
  try {
    return localStorage.getItem(nameOf(choice))
  } catch {
    return null
  }
}

function nameOf(choice: DisplayChoice): string {
  return `postbote-${choice}`
}
