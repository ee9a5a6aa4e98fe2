/**
 * One server for all tests of a file that need no special options and leave nothing behind that other tests would
 * notice. A start costs more than most of these tests. It has two workers, because a single one forwards nothing.
 *
 *     const shared = sharedServer()
 *     test('…', async () => {
 *       const server = await shared()
 *
 * Bots are registered with ids that no other test has (`freshBotOf`). `shared` does the same for a server with options,
 * and for what belongs to it.
 */
import { after } from 'node:test'
import { type EndingTest, type Server, startServer, type TestEnd } from './server.ts'

/** Call this when the file is loaded; the first test that needs the server starts it. */
export function sharedServer(): () => Promise<Server> {
  return shared((owner) => startServer(owner, { workers: 2 }))
}

/** Shares anything that takes a while to start. Functions registered with its owner end it. */
export function shared<T>(start: (owner: EndingTest) => Promise<T>): () => Promise<T> {
  const ends: TestEnd[] = []
  let started: Promise<T> | undefined
  after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  return () => (started ??= start({ after: (end) => void ends.push(end) }))
}
