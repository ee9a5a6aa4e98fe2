/** Asks for a key. The field is emptied after each try, and nothing else keeps the key. */
import { ApiError, type ApiClient } from './api-client.ts'
import { element } from './element.ts'
import { errorText } from './error-text.ts'
import { formElement } from './form-element.ts'
import type { PageView } from './page-context.ts'

export class LoginView implements PageView {
  readonly title = 'Log in'
  readonly root: HTMLElement
  readonly #api: ApiClient
  readonly #onLoggedIn: () => void
  readonly #key = element('input', {
    type: 'password',
    name: 'key',
    autocomplete: 'current-password',
    required: true,
  })
  readonly #result = element('p', { role: 'alert', class: 'error' })

  constructor(api: ApiClient, onLoggedIn: () => void) {
    this.#api = api
    this.#onLoggedIn = onLoggedIn
    this.root = element(
      'div',
      { class: 'login card' },
      element('h1', {}, 'Log in to Postbote'),
      formElement(
        () => void this.#login(),
        // Managers of passwords want a name beside the key.
        element('input', { autocomplete: 'username', value: 'admin', hidden: true }),
        element('label', {}, 'Key', this.#key),
        element('button', { type: 'submit' }, 'Log in'),
        this.#result,
      ),
      element(
        'p',
        { class: 'faint' },
        'The admin key is in the file admin.key of the data directory, unless --admin-key-file names another file. Any other key of this server opens what it may see.',
      ),
    )
  }

  close(): void {
    this.#key.value = ''
  }

  async #login(): Promise<void> {
    const { value } = this.#key
    this.#key.value = ''
    try {
      await this.#api.login(value.trim())
      this.#onLoggedIn()
    } catch (error) {
      const isWrong = error instanceof ApiError && error.status === 401
      const reason = errorText(error)
      this.#result.textContent = isWrong ? 'This is no key of this server.' : reason
      this.#key.focus()
    }
  }
}
