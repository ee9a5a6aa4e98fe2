/** Compares what a driver printed, and what the fake server stored, with the rules of README.md. */
import { isDeepStrictEqual } from 'node:util'
import type { FakeServer } from './fake-server.ts'
import {
  type DriverReport,
  type ErrorLine,
  type Job,
  newBot,
  type PrintedError,
  type ResultLine,
} from './job.ts'
import type { Outcome, Scenario } from './scenario.ts'

/** One run of a driver. */
export interface JudgedRun {
  readonly scenario: Scenario
  readonly job: Job
  /** Counts the runs of the job, from 1. */
  readonly run: number
  readonly report: DriverReport
  readonly server: FakeServer
}

/** The default of a stream. */
const pairsMaxDefault = 16_384
/** A program of any language with the pairs of a full stream needs less. */
const memoryBytesMax = 400 * 2 ** 20
/** Findings of one kind are alike. */
const findingsShown = 5

/** Returns what is wrong, in sentences; none if the client conforms. */
export function judge(run: JudgedRun): string[] {
  const { server, report } = run
  return [
    ...programFindings(run),
    ...(run.job.mode === 'calls' ? callFindings(run) : pushFindings(run)),
    ...retryFindings(run),
    ...boundFindings(run),
    ...messageFindings(run),
    ...server.complaints.slice(0, findingsShown),
    ...(report.errorText === '' ? [] : [`it wrote: ${report.errorText.slice(-2_000)}`]),
  ]
}

function programFindings({ report, scenario, job }: JudgedRun): string[] {
  const { exitCode, done, elapsedMs } = report
  const findings: string[] = []
  if (exitCode !== undefined) findings.push(`the driver ended with ${exitCode}`)
  if (done === undefined) findings.push('the line "done" is missing')
  const { min, max } = scenario.elapsedMs
  if (elapsedMs < min || elapsedMs > max) {
    findings.push(`it took ${Math.round(elapsedMs)} ms, expected ${min} to ${max} ms`)
  }
  if (JSON.stringify(report).includes(String(job.client['key']))) findings.push('it shows the key')
  return findings
}

function pushFindings(run: JudgedRun): string[] {
  const { job, report } = run
  const byPush = new Map(report.results.map((line) => [line.n, line]))
  const findings: string[] = []
  if (report.results.length !== job.count || byPush.size !== job.count) {
    findings.push(`${report.results.length} results of ${job.count} pushes`)
  }
  if (job.mode === 'pushAll' && report.results.some(({ n }, at) => n !== at)) {
    findings.push('the results are not in the order of the items')
  }
  const wrong = report.results.flatMap((line) => resultFindings(run, line))
  const queues = job.bots.flatMap((bot, nth) => queueFindings(run, { bot, nth, byPush }))
  return [...findings, ...wrong.slice(0, findingsShown), ...queues.slice(0, findingsShown)]
}

function resultFindings({ scenario, job, run, server }: JudgedRun, line: ResultLine): string[] {
  const outcomes = scenario.outcomes(line.n, job.mode, run)
  if (!outcomes.some((outcome) => isOutcome(line, outcome))) {
    return [`${JSON.stringify(line)}, expected ${JSON.stringify(outcomes)}`]
  }
  if (line.updateId === undefined) return []
  const bot = job.bots[line.n % job.bots.length] ?? 0
  return server.pushes.of(bot)[line.updateId - 1]?.n === line.n
    ? []
    : [`push ${line.n} is not stored under ${line.updateId}`]
}

/** A first push is a duplicate, too, if an earlier attempt of it was stored. */
function isOutcome(line: ResultLine, outcome: Outcome): boolean {
  if (outcome === 'filtered') return line.isFiltered === true
  if (outcome === 'stored') return typeof line.updateId === 'number'
  if (outcome === 'duplicate') return line.isDuplicate === true
  return line.error !== undefined && isDeepStrictEqual(withoutMessage(line.error), outcome)
}

function withoutMessage({ message: _ofPeople, ...error }: ErrorLine): PrintedError {
  return error
}

function queueFindings(
  { scenario, job, server }: JudgedRun,
  { bot, nth, byPush }: { bot: number; nth: number; byPush: ReadonlyMap<number, ResultLine> },
): string[] {
  const numbers = server.pushes.of(bot).map(({ n }) => n)
  const findings: string[] = []
  if (new Set(numbers).size !== numbers.length) findings.push(`bot ${bot} has updates twice`)
  const isOrdered = job.mode !== 'single' || job.concurrency === 1
  const max = nth === 0 ? scenario.overtakenMax : 0
  if (isOrdered && max < Infinity && numbers.some((n, at) => isOvertaken(numbers, n, at - max))) {
    findings.push(`the updates of bot ${bot} are not in order`)
  }
  const unknown = numbers.filter((n) => {
    const { updateId, error } = byPush.get(n) ?? {}
    return updateId === undefined && error?.isOutcomeUnknown !== true
  })
  if (unknown.length > 0)
    findings.push(`stored without a result that says so: ${unknown.slice(0, 9).join()}`)
  return findings
}

/** Whether an update comes after a later one that is stored before `at`. */
function isOvertaken(numbers: readonly number[], n: number, at: number): boolean {
  const before = numbers[at - 1]
  return before !== undefined && before > n
}

function callFindings({ scenario, job, report, server }: JudgedRun): string[] {
  const [botId = 0] = job.bots
  const results: Readonly<Record<string, object>> = {
    createBot: { botId: newBot.botId, token: `${newBot.botId}:made` },
    getBot: { botId, firstName: 'Echo', username: 'echo_bot', mode: 'polling', pendingCount: 3 },
    rotateToken: { botId, token: `${botId}:next` },
    removeBot: {},
  }
  const expected = Object.entries(results).map(([call, result]) => {
    const outcome = scenario.callOutcomes(call)
    return outcome === 'stored' ? { call, result } : { call, error: outcome }
  })
  const findings: string[] = []
  const calls = report.calls.map((line) =>
    line.error === undefined ? line : { ...line, error: withoutMessage(line.error) },
  )
  if (!isDeepStrictEqual(calls, expected)) {
    findings.push(`the calls are ${JSON.stringify(calls)}, expected ${JSON.stringify(expected)}`)
  }
  for (const { call, error } of expected as { call: string; error?: PrintedError }[]) {
    const attempts = server.attemptsOfCall(call)
    const max = error === undefined ? 2 : 1
    if (attempts > max) findings.push(`${call} was attempted ${attempts} times, expected ${max}`)
  }
  return findings
}

function retryFindings({ scenario, report, server }: JudgedRun): string[] {
  const { retryCode, attemptsMax, retriesMax } = scenario
  const findings: string[] = []
  const codes = report.retries.map(({ code }) => code)
  if (retryCode !== undefined && !codes.includes(retryCode)) {
    findings.push(
      `no repetition was told with ${retryCode}, but with: ${[...new Set(codes)].join()}`,
    )
  }
  if (retryCode === undefined && codes.length > 0) {
    findings.push(`${codes.length} repetitions, with: ${[...new Set(codes)].join()}`)
  }
  if (codes.length > retriesMax) {
    findings.push(`${codes.length} repetitions, expected ${retriesMax}: ${codes.join()}`)
  }
  if (report.retries.some(({ attempt }) => !Number.isInteger(attempt) || attempt < 1)) {
    findings.push('attempts of repetitions do not count from 1')
  }
  if (server.pushes.attemptsMax > attemptsMax) {
    findings.push(
      `a push was attempted ${server.pushes.attemptsMax} times, expected ${attemptsMax}`,
    )
  }
  return findings
}

function boundFindings({ scenario, job, report, server }: JudgedRun): string[] {
  const { pairsMax = pairsMaxDefault } = job.stream
  const findings: string[] = []
  const seen = Math.max(report.done?.inFlightMax ?? 0, server.pushes.unansweredMax)
  if (seen > pairsMax) findings.push(`${seen} pushes were under way, expected ${pairsMax}`)
  if (server.connectionsMax > scenario.connectionsMax) {
    findings.push(`${server.connectionsMax} connections were open`)
  }
  if (report.memoryBytesMax > memoryBytesMax) {
    findings.push(`it used ${Math.round(report.memoryBytesMax / 2 ** 20)} MiB of memory`)
  }
  return findings
}

/** A text says where the server was looked for, and what a response should have been. */
function messageFindings({ report, job }: JudgedRun): string[] {
  const errors = [...report.results, ...report.calls].flatMap(({ error }) => error ?? [])
  const place = String(job.client['url']).replace(/^.*\//, '')
  const findings = errors.flatMap(({ code, message }) => {
    if (code === 'CONNECTION_FAILED' && !message.includes(place)) return [message]
    if (code === 'UNEXPECTED_ANSWER' && !/expected/i.test(message)) return [message]
    return message === '' ? ['an empty text'] : []
  })
  return [...new Set(findings)].slice(0, findingsShown)
}
