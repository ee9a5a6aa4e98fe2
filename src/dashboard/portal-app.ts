/** The program of the owner's page. */
export class PortalApp {
  /** Takes the secret of the link out of the address and the history first of all. */
  constructor() {
    const secret = window.location.hash.slice(1)
    window.history.replaceState(null, '', window.location.pathname + window.location.search)
    const view = document.querySelector('#view')
    if (view !== null && secret === '') view.textContent = 'This page needs a link: ask for one.'
  }
}

// oxlint-disable-next-line no-new -- it runs as long as the page
new PortalApp()
