/** Asks for a key. The field is emptied after each try, and nothing else keeps the key. */
import { isUnauthorized } from './api-client.ts'
import { element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext, PageView } from './page-context.ts'
import { statusLine } from '../elements/messages.ts'

export function loginView({ api, atEnd }: PageContext, onLoggedIn: () => void): PageView {
  const key = element('input', {
    type: 'password',
    name: 'key',
    autocomplete: 'current-password',
    required: true,
  })
  const empty = (): string => {
    const { value } = key
    key.value = ''
    return value
  }
  const result = statusLine('error', 'alert')
  const login = async (): Promise<string> => {
    try {
      await api.login(empty().trim())
      onLoggedIn()
      return ''
    } catch (error) {
      key.focus()
      if (isUnauthorized(error))
        return 'The server does not know this key. Check that all of it was pasted, and that it has not expired or been revoked.'
      throw error
    }
  }
  atEnd(empty)
  const root = element(
    'div',
    { class: 'login card' },
    element('h1', {}, 'Log in to Postbote'),
    formElement(
      () => result.run(login),
      // Managers of passwords want a name beside the key.
      element('input', { autocomplete: 'username', value: 'admin', hidden: true }),
      element('label', {}, 'Key', key),
      submitElement('Log in'),
      result.root,
    ),
    element(
      'p',
      { class: 'faint' },
      'The admin key is in the file admin.key of the data directory, unless --admin-key-file names another file. Any other key of this server opens what it may see.',
    ),
  )
  return { title: 'Log in', root }
}
