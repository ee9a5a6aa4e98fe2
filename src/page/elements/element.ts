/** Makes the elements that the page has many of. */

/** What an element may be made with: a listener, an attribute, or a property such as `hidden`. */
type Attributes = Readonly<Record<string, string | number | boolean | (() => void) | undefined>>

/** Undefined in place of a child that is not wanted. */
export type Child = Node | string | undefined

/**
 * Makes an element. Text becomes a text node, never HTML, so nothing that a bot or an endpoint says can become markup.
 *
 * @param tag - the name of the element
 * @param attributes - `onclick` and other listeners, booleans that are set if true, and attributes; undefined: none
 * @param children - elements and texts
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') created.addEventListener(name.slice(2), value)
    else if (typeof value === 'boolean') created.toggleAttribute(name, value)
    else if (value !== undefined) created.setAttribute(name, `${value}`)
  }
  created.append(...children.filter((child) => child !== undefined))
  return created
}

/** Replaces the text of an element if it differs, so that a screen reader repeats nothing. */
export function setElementText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text
}

export interface ButtonOptions {
  /** Says to a screen reader what the button acts on, if several have its text. */
  readonly of?: string | number
  /** Classes of page.css: `primary`, of which a card has one, `danger` for what cannot be undone, `quiet`, `small`. */
  readonly style?: string
}

/** Makes a button that sends no form. */
export function buttonElement(
  text: string,
  onclick: () => void,
  { of, style }: ButtonOptions = {},
): HTMLButtonElement {
  const label = of === undefined ? undefined : `${text} ${of}`
  return element('button', { type: 'button', class: style, 'aria-label': label, onclick }, text)
}

/** Makes the button that submits a form: its primary one. */
export function submitElement(text: string): HTMLButtonElement {
  return element('button', { type: 'submit', class: 'primary' }, text)
}

/** Makes a row of buttons. */
export function buttonsElement(...buttons: readonly Child[]): HTMLElement {
  return element('div', { class: 'buttons' }, ...buttons)
}

/** Makes a part of the page, with its title. */
export function cardElement(title: string, ...children: readonly Child[]): HTMLElement {
  return element('section', { class: 'card' }, element('h2', {}, title), ...children)
}

/**
 * Makes a place that scrolls, also with the keyboard.
 *
 * @param name - what a screen reader says
 * @param style - classes of page.css
 */
export function scrollElement(name: string, child: Node, style: string): HTMLElement {
  const attributes = { class: style, tabindex: 0, role: 'region', 'aria-label': name }
  return element('div', attributes, child)
}

/**
 * Makes a form whose submission calls a function. The browser sends nothing by itself, and judges nothing: the server says what
 * is wrong, as it does to programs.
 */
export function formElement(onSubmit: () => void, ...children: readonly Child[]): HTMLFormElement {
  const form = element('form', { novalidate: true }, ...children)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    onSubmit()
  })
  return form
}
