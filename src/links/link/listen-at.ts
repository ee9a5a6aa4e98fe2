import { rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { socketPathBytesMax } from '../../kit/limits.ts'
import { listenBacklog } from '../../process/limits.ts'

/** Makes a server listen on a Unix socket. Rejects, with a message for the operator, if it cannot. */
export async function listenAt(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) >= socketPathBytesMax) {
    throw new Error(
      `the path of the socket ${path} must be shorter than ${socketPathBytesMax} bytes: choose a shorter directory`,
    )
  }
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive`, node:cluster would ask the primary to listen.
    server.listen({ path, exclusive: true, backlog: listenBacklog }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', () => undefined) // EMFILE: libuv has closed what it could not accept.
}
