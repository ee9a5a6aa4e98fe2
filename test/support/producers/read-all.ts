import type { RegisteredBot, Server } from '../server/server.ts'

/** Reads everything that a bot has pending, confirmed page by page: update ids and messages. */
export async function readAll(server: Server, { token }: Pick<RegisteredBot, 'token'>) {
  const all: { readonly id: number; readonly message: Readonly<Record<string, number>> }[] = []
  for (let offset = 0; ; ) {
    const { body } = await server.call(token, 'getUpdates', { offset, limit: 100 })
    for (const { update_id: id, message } of body.result) all.push({ id, message })
    if (body.result.length === 0) return all
    offset = (all.at(-1)?.id ?? 0) + 1
  }
}
