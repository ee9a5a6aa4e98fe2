/**
 * Which user of this machine has the other end of a connection. The kernel lists the sockets of both ends, with their users:
 *
 *     sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ...
 *      0: 0100007F:1F92 00000000:0000 0A 00000000:00000000 00:00000000 00000000   998        0 12345 ...
 *
 * An address is words of 32 bits in the order of the machine, which is little-endian on all that are supported.
 */
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { ipAddressBytes, unmappedBytes } from '../../http/ip-address.ts'

type Ends = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>

/**
 * Returns the id of the user; undefined if nobody of this machine has the other end, or if it cannot be seen.
 *
 * @param ends - an open connection
 * @param tables - the sockets of this machine
 */
export function peerUser(ends: Ends, tables: string = socketTables()): number | undefined {
  const [here, there] = [
    formsOf(ends.localAddress, ends.localPort),
    formsOf(ends.remoteAddress, ends.remotePort),
  ]
  for (const [form, local] of there.entries()) {
    const at = tables.indexOf(` ${local} ${here[form]} `)
    if (at < 0) continue
    const { user, inode } = rowAt(tables, at)
    // A connection that the program has not taken yet has no inode, and on older kernels no user: its listener will take it.
    return inode === 0 ? listeningUser(there, tables) : user
  }
  return undefined
}

function socketTables(): string {
  return ['tcp', 'tcp6'].map((name) => textOf(`/proc/net/${name}`)).join('')
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

/** Returns the user of those that listen here, if all have the same. */
function listeningUser(there: readonly string[], tables: string): number | undefined {
  const places = there.flatMap((form) => [
    form,
    form.replace(/^\w+/, (address) => '0'.repeat(address.length)),
  ])
  const users = new Set<number>()
  for (const place of places) {
    const listens = new RegExp(` ${place} 0+:0000 0A `, 'g')
    for (const { index } of tables.matchAll(listens)) users.add(rowAt(tables, index).user)
  }
  const [user, ...others] = users
  return others.length === 0 ? user : undefined
}

/** Returns what the row says, whose local address is at this place. */
function rowAt(tables: string, at: number): { readonly user: number; readonly inode: number } {
  const [, , , , , , , user, , inode] = tables.slice(at, tables.indexOf('\n', at)).split(/ +/)
  return { user: Number(user), inode: Number(inode) }
}

/** Returns an address and a port as the tables have them, in that of IPv4, if it is in it, and in that of IPv6. */
function formsOf(address = '', port = 0): readonly string[] {
  const bytes = unmappedBytes(ipAddressBytes(address) ?? [])
  const end = `:${hexOf([port >> 8, port & 0xff])}`
  if (bytes.length !== 4) return [wordsOf(bytes) + end]
  const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ...bytes]
  return [wordsOf(bytes) + end, wordsOf(mapped) + end]
}

function wordsOf(bytes: readonly number[]): string {
  let words = ''
  for (let at = 0; at < bytes.length; at += 4) words += hexOf(bytes.slice(at, at + 4).toReversed())
  return words
}

function hexOf(bytes: readonly number[]): string {
  return bytes
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
    .toUpperCase()
}
