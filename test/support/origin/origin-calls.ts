/** What a fake origin is asked, what it does wrong, and where it stops: shared by its process and by the tests. */

/** A call that an origin has received, as it ended. Times are of the wall clock. */
export interface OriginCall {
  readonly startMs: number
  readonly endMs: number
  readonly botId: number
  /** As the call wrote it, or `file`. */
  readonly method: string
  readonly status: number
  /** Of getUpdates. */
  readonly offset?: number
  readonly limit?: number
  readonly timeoutS?: number
  readonly allowed?: readonly string[] | undefined
  /** The ids that it confirmed, and those in the response. */
  readonly confirmed?: readonly number[]
  readonly given?: readonly number[]
}

/** What getUpdates of a bot does in place of its work. */
export type OriginFault =
  | {
      readonly kind: 'refuse'
      readonly status: number
      readonly description: string
      readonly retryAfterS?: number
    }
  /** Any response, such as a redirect or broken JSON. */
  | {
      readonly kind: 'respond'
      readonly status: number
      readonly body: string
      readonly headers?: Readonly<Record<string, string>>
    }
  | { readonly kind: 'hang' }
  /** The connection closes in the middle of the response to a call that was done. */
  | { readonly kind: 'cut' }

/**
 * Where a call of getUpdates stops:
 *
 * - `answer`: the response with updates is ready and not sent;
 * - `answered`: it was sent. The call does not stop here;
 * - `confirm`: the call has arrived and would confirm updates, and nothing is confirmed;
 * - `confirmed`: they are confirmed, and no response is sent.
 */
export type OriginGate = 'answer' | 'answered' | 'confirm' | 'confirmed'

/** Messages that the origin makes by itself: in each chat they are numbered from 0 on. */
export interface OriginDrive {
  readonly botId: number
  readonly chats: readonly number[]
  /** In each chat. */
  readonly count: number
  /** In all chats together; without it all of them are there at once. */
  readonly perSecond?: number
}

/** What a test asks of an origin; `botId` is a bot that `register` has made. */
export interface OriginControl {
  register(
    bots: readonly { readonly botId: number; readonly token: string; readonly firstId?: number }[],
  ): Promise<void>
  /** Another token is accepted from now on, and the one before refused. */
  renew(botId: number, token: string): Promise<void>
  /** Returns the ids; undefined for a type that the bot did not ask for. */
  push(botId: number, updates: readonly object[]): Promise<readonly (number | undefined)[]>
  drive(drive: OriginDrive): Promise<void>
  /** Returns how many messages of each chat were made. */
  driven(botId: number): Promise<Readonly<Record<number, number>>>
  renumber(botId: number, firstId: number): Promise<void>
  pending(botId: number): Promise<number>
  /** Whether a poll waits. */
  isPolled(botId: number): Promise<boolean>
  waitingPolls(): Promise<number>
  setWebhook(botId: number, url: string): Promise<void>
  /** Without a fault, getUpdates works again. */
  fault(botId: number, fault: OriginFault | undefined, times?: number): Promise<void>
  /** Resolves when a call has come to the gate. */
  reach(botId: number, gate: OriginGate): Promise<void>
  /** Lets the call at the gate go on, or closes its connection without doing more. */
  release(botId: number, how: 'go' | 'drop'): Promise<void>
  /** Returns the calls from this one on, in the order of their ends. */
  calls(from?: number): Promise<readonly OriginCall[]>
  /** Returns the messages that the bot has sent. */
  sent(botId: number): Promise<readonly Readonly<Record<string, unknown>>[]>
}

/** The text of a driven message. */
export function drivenText(chat: number, number: number): string {
  return `${chat} ${number}`
}

/** Returns a message as the interface describes it. */
export function chatMessage(
  chat: number,
  text: string,
  messageId = 1,
): { readonly message: object } {
  return {
    message: {
      message_id: messageId,
      date: 1_795_259_700,
      chat: { id: chat, type: 'private', first_name: 'A' },
      from: { id: chat, is_bot: false, first_name: 'A' },
      text,
    },
  }
}
