/** A PostgreSQL that syncs its log before each commit returns. */
import { Client } from 'pg'
import { sendSignal } from '../../test/support/kit/send-signal.ts'
import { Postgres } from '../../test/support/server/postgres.ts'
import type { CaseContext } from '../contestant.ts'
import { cpuUsOfFamily, processTree, residentBytesOf } from '../process-cpu.ts'
import type { PeerAddress, PeerServer } from './peer.ts'

const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
}

export async function startPostgres(
  context: CaseContext,
  prepare: (url: string) => Promise<void>,
): Promise<PeerServer> {
  const server = await Postgres.start({ settings })
  const end = (): void => sendSignal(server.pid, 'SIGQUIT')
  process.once('exit', end)
  context.atEnd(async () => {
    process.off('exit', end)
    await server.remove()
  })
  await prepare(server.url())
  return {
    address: { port: server.port },
    cpuUsByProcess: () => ({ server: cpuUsOfFamily(server.pid) }),
    residentBytes: () => residentBytesOf(processTree(server.pid)),
  }
}

export function postgresUrl({ port }: PeerAddress): string {
  return `postgres://postbote@127.0.0.1:${port}/postgres`
}

export async function postgresClient(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  return client
}
