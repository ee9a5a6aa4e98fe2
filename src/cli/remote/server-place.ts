/**
 * Finds the private listener of the server of a data directory, and proves who has it: the admin key must reach nobody who
 * cannot read it anyway.
 *
 *     the server is asked at its command socket, which only its user can make there    -> the address
 *     nobody answers                                                                   -> no server runs on DIR
 *     this user may not enter the directory                                            -> the address that the options name
 *
 * Then each connection is judged before anything is sent: whoever has its other end is the owner of the directory, or this user.
 * Between the answer and the connection, the server may have ended, and another user's program may have taken the port.
 */
import { X509Certificate } from 'node:crypto'
import { lstatSync, readFileSync, statSync } from 'node:fs'
import type { Socket } from 'node:net'
import { relative } from 'node:path'
import { TLSSocket } from 'node:tls'
import type { ServerConnectionOptions } from '../../../clients/typescript/server-connection.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Config } from '../../config/config.ts'
import { isSocketPath } from '../../config/config-values.ts'
import {
  askServer,
  isForbidden,
  networkOfProcess,
  type ServerStatus,
} from '../serve/command-socket.ts'
import { addressElsewhere, listenersOf } from '../serve/listeners-of.ts'
import { peerUser } from './peer-user.ts'

type Judge = NonNullable<ServerConnectionOptions['judge']>

/** Where the private API is. */
export interface ServerPlace {
  /** How errors name it. */
  readonly shown: string
  readonly url?: string
  readonly socketPath?: string
  readonly judge?: Judge
}

/** It is not known that the server of the directory has the other end of a connection. */
export class StrangerError extends Error {
  constructor(shown: string, problem: string) {
    super(`${problem} at ${shown}, and nothing was sent: name the server with --url and --key-file`)
    this.name = 'StrangerError'
  }
}

/**
 * Returns the place of the server that has the data directory of the options.
 *
 * @throws Error if no server runs on it, or none that can be reached from here.
 */
export async function placeOf(config: Config): Promise<ServerPlace> {
  const { dir, adminCert } = config
  const status = await statusOf(dir)
  // A server of an earlier version does not say everything, and one of another user nothing.
  const { private: shown = configuredAddress(config), isPrivateTls = adminCert !== undefined } =
    status
  const isOwner = ownerJudge(dir, shown)
  if (isSocketPath(shown)) return { shown, socketPath: nearPath(shown), judge: isOwner }
  if (status.network !== undefined && status.network !== networkOfProcess()) {
    throw new Error(
      `the server on ${dir} runs in another network, such as that of a container: run the command there, or name its address with --url and --key-file`,
    )
  }
  const host = shown.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:')
  if (!isPrivateTls) return { shown, url: `http://${host}`, judge: isOwner }
  const isCertified = adminCert === undefined ? nothing : onlyWith(adminCert)
  return {
    shown,
    url: `https://${host}`,
    judge: (socket) => isOwner(socket) ?? isCertified(socket),
  }
}

async function statusOf(directory: string): Promise<Partial<ServerStatus>> {
  let answer: Awaited<ReturnType<typeof askServer>>
  try {
    answer = await askServer(directory, 'status', systemClock)
  } catch (error) {
    if (isForbidden(error)) return {}
    throw error
  }
  if (answer === undefined) {
    throw new Error(`no server runs on ${directory}: name the directory of a server with --dir`)
  }
  const { status = {} }: { readonly status?: Partial<ServerStatus> } = answer
  if (status.state === 'starting' && status.private === undefined) {
    throw new Error(`the server on ${directory} is starting and does not listen yet: try again`)
  }
  return status
}

function configuredAddress(config: Config): string {
  const configured = listenersOf(config).find(({ listener }) => listener === 'private')
  return configured === undefined ? '' : addressElsewhere(configured.address)
}

/** The kernel's field for paths is short, and Node.js would cut a longer one. */
function nearPath(path: string): string {
  const near = relative('', path)
  return near.length < path.length ? near : path
}

function ownerJudge(directory: string, shown: string): Judge {
  const users = [ownerOf(directory), process.geteuid?.()]
  return (socket) => {
    const user = isSocketPath(shown) ? ownerOfSocket(shown) : peerUser(socket)
    if (user !== undefined && users.includes(user)) return undefined
    const problem =
      user === undefined
        ? 'it cannot be seen who listens'
        : `user ${user}, who does not own ${directory}, listens`
    return new StrangerError(shown, problem)
  }
}

/** Returns undefined if this user may not see it. */
function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid
  } catch {
    return undefined
  }
}

/** A link could lead to a socket of another user by now. Returns undefined if there is no socket. */
function ownerOfSocket(path: string): number | undefined {
  try {
    const found = lstatSync(path)
    return found.isSocket() ? found.uid : undefined
  } catch {
    return undefined
  }
}

function nothing(): undefined {
  return undefined
}

/**
 * Accepts only a server that shows the certificate in this file, whoever signed it. The names in the certificate are not compared,
 * because they are those under which clients reach the server, and not the address of the listener. It may have expired: whoever
 * has its key is the server.
 */
function onlyWith(file: string): Judge {
  const certificate = certificateIn(file)
  return (socket: Socket) => {
    const shown = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined
    if (shown === undefined) return new Error('it shows no certificate')
    if (shown.raw.equals(certificate.raw)) return undefined
    return new Error(
      `it shows another certificate than ${file}: after a renewal, reload the server`,
    )
  }
}

function certificateIn(file: string): X509Certificate {
  try {
    return new X509Certificate(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new Error(`the certificate of --admin-cert cannot be read from ${file}`, { cause })
  }
}
