/** `postbote doctor`: says what is wrong with the databases. The exit code is 1 if updates may be lost or nothing works. */
import type { Config } from '../config/config.ts'
import { examineDatabase } from '../store/postgres/examine-database.ts'
import { databaseProblems } from './database-problems.ts'
import { databasesOf, headingOf } from './with-databases.ts'

const marks = { good: 'ok  ', warn: 'WARN', bad: 'BAD ' } as const

export async function doctor(config: Config): Promise<void> {
  const databases = databasesOf(config)
  const examined = await Promise.all(databases.map((database) => examineDatabase(database)))
  for (const [number, { findings }] of examined.entries()) {
    const lines = findings.map(({ level, text }) => `${marks[level]} ${text}`)
    process.stdout.write(`${[...headingOf(databases, number), ...lines].join('\n')}\n`)
  }
  const named = databases.map((database, number) => ({ database, row: examined[number]?.cluster }))
  const problems = databaseProblems(named)
  for (const problem of problems) process.stdout.write(`${marks.bad} ${problem}\n`)
  const findings = examined.flatMap((each) => each.findings)
  if (problems.length > 0 || findings.some(({ level }) => level === 'bad')) process.exitCode = 1
}
