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
/**
 * Parameters that do not reach `pg`. It would prefer the names of connections to those that it is given, and a claim finds
 * the connections of the old owner by their names.
 */
const ownParameters = ['host', 'port', 'application_name', 'fallback_application_name']

/**
 * Returns the parts of the URL, or undefined if it is none of a PostgreSQL database. Special characters of the password
 * must be encoded: otherwise a part of it would be taken for the name of a host or of the database, and shown.
 */
export function parsePgUrl(text: string): PgUrl | undefined {
  if (!schemes.test(text)) return undefined
  const [, user = '', authority = '', rest = ''] =
    /^[^:]+:\/\/(?:([^@/]*)@)?([^/?]*)([^]*)$/.exec(text) ?? []
  const base = urlOf(`postgres://${user === '' ? '' : `${user}@`}host${rest}`)
  const database = base === undefined ? '' : databaseOf(base)
  if (base === undefined || database === '') return undefined
  const hosts = hostsOf(authority, base.searchParams)
  if (hosts === undefined) return undefined
  for (const name of ownParameters) base.searchParams.delete(name)
  const servers = hosts.map((host) => serverAt(host, base))
  return { servers, shown: `${servers.map(({ shown }) => shown).join(',')}/${database}` }
}

/** Returns the databases for people, without their passwords. */
export function shownUrls(urls: readonly PgUrl[]): string {
  return urls.map(({ shown }) => shown).join(', ')
}

function urlOf(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}

/** Returns the name of the database, or nothing if a part of the URL is not encoded as `pg` decodes it. */
function databaseOf({ username, password, pathname }: URL): string {
  // After a slash in a password that is not encoded, the rest of it would be shown as the name.
  if (/[/@]/.test(pathname.slice(1))) return ''
  try {
    decodeURIComponent(username + password)
    return decodeURIComponent(pathname.slice(1))
  } catch {
    return ''
  }
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
  return hosts.every(isValid) ? hosts : undefined
}

function isValid({ name, port }: Host): boolean {
  if (!/^\d{1,5}$/.test(port) || Number(port) === 0) return false
  const host = name.startsWith('/') ? 'host' : name
  return host !== '' && !/[@#?/]/.test(host) && URL.canParse(`postgres://${host}:${port}`)
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
