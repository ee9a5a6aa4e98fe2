/** What an element may be made with: a listener, an attribute, or a property such as `hidden`. */
type Attributes = Readonly<Record<string, string | number | boolean | ((event: Event) => void)>>

type Child = Node | string

/**
 * Makes an element. Text becomes a text node, never HTML, so nothing that a bot or an endpoint says can become markup.
 *
 * @param tag - the name of the element
 * @param attributes - `onclick` and other listeners, booleans that are set if true, and attributes
 * @param children - elements and texts
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name.slice(2), value)
    else if (typeof value === 'boolean') made.toggleAttribute(name, value)
    else made.setAttribute(name, `${value}`)
  }
  made.append(...children)
  return made
}

/** Replaces the text of an element if it differs, so that a screen reader repeats nothing. */
export function setElementText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text
}
