/**
 * Reads the URL of a database, which may name several servers of it: `postgres://user:password@a,b:5433/name?sslmode=require`
 * or `postgres:///name?host=/run/postgresql`. One of them is the primary; the others are its standbys.
 */

/** One server of a database. */
export interface PgServerAddress {
  /** Host and port, for messages. */
  readonly shown: string
  /** A URL with this server alone, as `pg` takes it. Contains the password. */
  readonly url: string
}

export interface PgUrl {
  readonly servers: readonly PgServerAddress[]
  /** The servers and the name of the database, without user and password. */
  readonly shown: string
}

const schemes = /^postgres(?:ql)?:\/\//
const defaultPort = '5432'

/** Splits a list of URLs. The commas within one URL separate its servers. */
export function splitPgUrls(text: string): readonly string[] {
  return text.split(/,(?=postgres(?:ql)?:\/\/)/)
}

/** Returns the parts of the URL, or undefined if it is none of a PostgreSQL database. */
export function parsePgUrl(text: string): PgUrl | undefined {
  if (!schemes.test(text)) return undefined
  const [, user = '', authority = '', rest = ''] =
    /^[^:]+:\/\/(?:([^@/]*)@)?([^/?]*)([^]*)$/.exec(text) ?? []
  let base: URL
  let database: string
  try {
    base = new URL(`postgres://${user === '' ? '' : `${user}@`}host${rest}`)
    database = decodeURIComponent(base.pathname.slice(1))
  } catch {
    return undefined
  }
  // After a slash in a password that is not encoded, the rest of the password would be shown as the name.
  if (database === '' || /[/@]/.test(base.pathname.slice(1))) return undefined
  const hosts = hostsOf(authority, base.searchParams)
  if (hosts === undefined) return undefined
  base.searchParams.delete('host')
  base.searchParams.delete('port')
  // Claims end connections by it.
  base.searchParams.delete('application_name')
  const servers = hosts.map((host) => serverAt(host, base))
  return { servers, shown: `${servers.map(({ shown }) => shown).join(',')}/${database}` }
}

interface Host {
  readonly name: string
  readonly port: string
}

function hostsOf(authority: string, query: URLSearchParams): readonly Host[] | undefined {
  const asked = query.get('host')
  const ports = query.get('port')?.split(',') ?? []
  const named =
    authority === ''
      ? (asked ?? 'localhost').split(',').map((name) => ({ name, port: undefined }))
      : authority.split(',').map(splitPort)
  const hosts = named.map(({ name, port }, nth) => {
    const shared = ports.length === 1 ? ports[0] : ports[nth]
    return { name, port: port ?? shared ?? defaultPort }
  })
  const isValid = hosts.every(({ name, port }) => name !== '' && /^\d{1,5}$/.test(port))
  return isValid ? hosts : undefined
}

function splitPort(text: string): { readonly name: string; readonly port: string | undefined } {
  const [, name = '', port] = /^(\[[^\]]+\]|[^:]*)(?::(.*))?$/.exec(text) ?? []
  return { name, port }
}

function serverAt({ name, port }: Host, base: URL): PgServerAddress {
  const own = new URL(base)
  if (name.startsWith('/')) {
    own.searchParams.set('host', name)
    own.searchParams.set('port', port)
    // pg takes the directory of a Unix socket from the query only if the URL has no host.
    return {
      shown: `${name}:${port}`,
      url: own.href.replace('@host/', '@/').replace('//host/', '///'),
    }
  }
  own.host = `${name}:${port}`
  return { shown: `${name}:${port}`, url: own.href }
}
