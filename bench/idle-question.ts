/** The message from a case to the helper `idle-polls`; the reply is the number of connections. */
export interface IdleQuestion {
  readonly port: number
  readonly connections: readonly IdleConnection[]
}

export interface IdleConnection {
  /**
   * Its response must arrive before `last` is sent, which limits concurrent connects. It decides which worker gets the
   * connection.
   */
  readonly first: string
  readonly last: string
}
