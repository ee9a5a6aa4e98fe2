/** The message from a case to the helper `idle-polls`, answered with the number of connections. */
export interface IdleQuestion {
  readonly port: number
  readonly connections: readonly IdleConnection[]
}

export interface IdleConnection {
  /** Answered before the other is sent, so that no more connect at a time than are accepted; decides where the connection goes. */
  readonly first: string
  readonly last: string
}
