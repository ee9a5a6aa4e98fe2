/** The program of the owner's page. It takes the secret of its link out of the address and the history first of all. */
const secret = window.location.hash.slice(1)
window.history.replaceState(null, '', window.location.pathname + window.location.search)
const view = document.querySelector('#view')
if (view !== null) view.textContent = secret === '' ? 'This page needs a link: ask for one.' : ''
