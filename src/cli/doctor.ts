/** `postbote doctor`: says what is wrong with a database. The exit code is 1 if updates may be lost or nothing works. */
import { type Config, ConfigError } from '../config/config.ts'
import { examineDatabase } from '../store/postgres/examine-database.ts'
import { parsePgUrl } from '../store/postgres/pg-url.ts'

const marks = { good: 'ok  ', warn: 'WARN', bad: 'BAD ' } as const

export async function doctor(config: Config): Promise<void> {
  const database = config.database === undefined ? undefined : parsePgUrl(config.database)
  if (database === undefined) {
    throw new ConfigError(['--database: expected the URL of a database, got none'])
  }
  const findings = await examineDatabase(database)
  for (const { level, text } of findings) process.stdout.write(`${marks[level]} ${text}\n`)
  if (findings.some(({ level }) => level === 'bad')) process.exitCode = 1
}
