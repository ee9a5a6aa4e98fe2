/** The program of the owner's page. */
export class PortalApp {
  /** The secret of the link. */
  readonly #secret: string

  /** Takes the secret out of the address and the history first of all. */
  constructor() {
    this.#secret = window.location.hash.slice(1)
    window.history.replaceState(null, '', window.location.pathname + window.location.search)
    const view = document.querySelector('#view')
    if (view !== null && this.#secret === '') view.textContent = 'This page needs a link: ask for one.'
  }
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new PortalApp()
