/**
 * One server for all tests of a file that need no options of their own and leave nothing behind that another one would
 * notice: a start costs more than most of what is asked of it.
 *
 *     const shared = sharedServer()
 *     test('…', async () => {
 *       const server = await shared()
 *
 * Bots are registered under ids that no other test has (`freshBotOf`).
 */
import { after } from 'node:test'
import { type Server, startServer, type TestEnd } from './server.ts'

/** Called where the file is loaded; the server is started by the first test that asks for it. */
export function sharedServer(): () => Promise<Server> {
  const ends: TestEnd[] = []
  let server: Promise<Server> | undefined
  after(async () => {
    for (const end of ends) await end()
  })
  return () => (server ??= startServer({ after: (end) => void ends.push(end) }))
}
