/** The part of node-telegram-bot-api 0.67 that the tests use; its types are a package of their own. */
declare module 'node-telegram-bot-api-0' {
  interface Options {
    readonly baseApiUrl: string
    readonly testEnvironment: boolean
    readonly polling?: { readonly params: { readonly allowed_updates?: readonly string[] } }
    readonly webHook?: { readonly host: string; readonly port: number; readonly autoOpen: boolean }
  }
  interface WebhookOptions {
    readonly secret_token?: string
    /** The path of its file. */
    readonly certificate?: string
  }
  class TelegramBot {
    constructor(token: string, options: Options)
    on(event: 'message', listener: (message: { readonly text?: string }) => void): this
    stopPolling(options: { readonly cancel: boolean }): Promise<void>
    openWebHook(): Promise<void>
    closeWebHook(): Promise<void>
    setWebHook(url: string, options: WebhookOptions): Promise<boolean>
    getWebHookInfo(): Promise<object>
    deleteWebHook(): Promise<boolean>
  }
  export default TelegramBot
}
