/** `postbote doctor`: says what is wrong with a database. The exit code is 1 if updates may be lost or nothing works. */
import type { Config } from '../config/config.ts'
import { examineDatabase } from '../store/postgres/examine-database.ts'
import { databaseOf } from './with-database.ts'

const marks = { good: 'ok  ', warn: 'WARN', bad: 'BAD ' } as const

export async function doctor(config: Config): Promise<void> {
  const findings = await examineDatabase(databaseOf(config))
  for (const { level, text } of findings) process.stdout.write(`${marks[level]} ${text}\n`)
  if (findings.some(({ level }) => level === 'bad')) process.exitCode = 1
}
