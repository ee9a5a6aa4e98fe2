/**
 * The least of a bot API server that a relay polls: it keeps the updates of one token, confirms by offset, and answers one
 * poll at a time. Of other calls it returns the path. A test may have it answer something else.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { json, text as textOf } from 'node:stream/consumers'
import { portOf } from '../kit/port.ts'
import type { EndingTest } from '../server/server.ts'

/** A getUpdates call as it came. */
export interface SeenPoll {
  readonly path: string
  readonly offset?: number
  readonly limit: number
  readonly timeout: number
  readonly allowed_updates: readonly string[]
}

/** Answers a poll in place of the origin; false leaves it to the origin. */
export type Instead = (poll: SeenPoll, response: ServerResponse) => boolean

export interface SmallOrigin {
  /** Its origin, without a path. */
  readonly url: string
  readonly polls: readonly SeenPoll[]
  /** What is not confirmed. */
  readonly pending: readonly object[]
  /** Adds updates, and answers the poll that waits. */
  add(...updates: readonly object[]): void
  answerInstead(instead: Instead | undefined): void
}

/** Starts an origin whose first update has the id `nextId`. */
export async function startSmallOrigin(t: EndingTest, nextId = 1_000): Promise<SmallOrigin> {
  const polls: SeenPoll[] = []
  let pending: { readonly update_id: number }[] = []
  let waiting: { readonly response: ServerResponse; readonly limit: number } | undefined
  let instead: Instead | undefined
  let id = nextId

  const answer = (response: ServerResponse, limit: number): void => {
    send(response, 200, { ok: true, result: pending.slice(0, limit) })
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = '' } = request
    if (!url.endsWith('/getUpdates')) {
      await textOf(request)
      send(response, 200, { ok: true, result: { path: url } })
      return
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a test asserts its shape by using it
    const poll = { ...((await json(request)) as SeenPoll), path: url }
    polls.push(poll)
    if (instead?.(poll, response) === true) return
    const { offset = 0, limit } = poll
    pending = pending.filter(({ update_id: each }) => each >= offset)
    const description = 'Conflict: terminated by other getUpdates request'
    if (waiting !== undefined)
      send(waiting.response, 409, { ok: false, error_code: 409, description })
    waiting = undefined
    if (pending.length > 0) {
      answer(response, limit)
      return
    }
    waiting = { response, limit }
    response.once('close', () => {
      if (waiting?.response === response) waiting = undefined
    })
  }
  const server: Server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(async () => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${portOf(server)}`,
    polls,
    get pending() {
      return pending
    },
    add(...updates) {
      pending.push(...updates.map((update) => ({ update_id: id++, ...update })))
      const poll = waiting
      waiting = undefined
      if (poll !== undefined) answer(poll.response, poll.limit)
    },
    answerInstead(other) {
      instead = other
    },
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
