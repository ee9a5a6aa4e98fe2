/** The menu of how the page looks: its theme, and the time zone of moments. */
import { element } from '../elements/element.ts'
import { localZoneName } from '../elements/browser-clock.ts'
import {
  chooseDisplay,
  type DisplayChoice,
  displayChoices,
  displayValue,
} from './display-choices.ts'

const titles = { theme: 'Theme', times: 'Times' } as const satisfies Record<DisplayChoice, string>

const texts: Readonly<Record<string, string>> = {
  system: 'As the system',
  light: 'Light',
  dark: 'Dark',
  local: `Local (${localZoneName()})`,
  utc: 'UTC',
}

/**
 * Fills the menu of the document.
 *
 * @param menu - what opens and closes
 * @param onTimes - moments are in another time zone now
 */
export function displayMenu(menu: HTMLElement, onTimes: () => void): void {
  const choices: readonly DisplayChoice[] = ['theme', 'times']
  const fields = choices.map((choice) => {
    const select = element(
      'select',
      {
        onchange: () => {
          chooseDisplay(choice, select.value)
          if (choice === 'times') onTimes()
        },
      },
      ...displayChoices[choice].map((value) => element('option', { value }, texts[value])),
    )
    select.value = displayValue(choice)
    return element('label', {}, titles[choice], select)
  })
  menu.append(element('div', { class: 'menu-fields' }, ...fields))
  const close = (): void => menu.removeAttribute('open')
  document.addEventListener('pointerdown', ({ target }) => {
    if (target instanceof Node && !menu.contains(target)) close()
  })
  window.addEventListener('hashchange', close)
  menu.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !menu.contains(relatedTarget)) close()
  })
  menu.addEventListener('keydown', ({ key }) => {
    if (key !== 'Escape') return
    close()
    menu.querySelector('summary')?.focus()
  })
}
