/**
 * One server for all tests of a file that need no options of their own and leave nothing behind that another one would
 * notice: a start costs more than most of what is asked of it.
 *
 *     const shared = sharedServer()
 *     test('…', async () => {
 *       const server = await shared()
 *
 * Bots are registered under ids that no other test has (`freshBotOf`). `shared` does the same for a server with options,
 * and for what belongs to it.
 */
import { after } from 'node:test'
import { type EndingTest, type Server, startServer, type TestEnd } from './server.ts'

/** Called where the file is loaded; the server is started by the first test that asks for it. */
export function sharedServer(): () => Promise<Server> {
  return shared((owner) => startServer(owner))
}

/** Of anything that takes a while to start, and is ended by what it registers with its owner. */
export function shared<T>(start: (owner: EndingTest) => Promise<T>): () => Promise<T> {
  const ends: TestEnd[] = []
  let started: Promise<T> | undefined
  after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  return () => (started ??= start({ after: (end) => void ends.push(end) }))
}
