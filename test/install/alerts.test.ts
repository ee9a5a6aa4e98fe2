/** The rules for Prometheus and the dashboard for Grafana name metrics, labels and commands that exist. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { commandTable } from '../../src/modules/command-table.ts'
import { operatorEventTypes } from '../../src/kit/operator-event.ts'
import { programObstacle } from '../support/kit/program-obstacle.ts'
import { startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { yamlDocuments, yamlObstacle } from '../support/kit/yaml.ts'
import { alertCases, evaluatedAfterMinutes } from './alert-cases.ts'
import { outputOf } from '../support/programs/postbote.ts'

const folder = new URL('../../../docs/run/alerts/', import.meta.url)

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly annotations: { readonly summary: string; readonly description: string }
    }[]
  }[]
}

interface Scrape {
  readonly scrape_configs: readonly [
    {
      readonly job_name: string
      readonly metrics_path: string
      readonly authorization: { readonly type: string; readonly credentials_file: string }
    },
  ]
}

interface Dashboard {
  readonly panels: readonly {
    readonly id: number
    readonly title: string
    readonly gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
  }[]
  readonly templating: unknown
}

const dashboard: Dashboard = JSON.parse(read('grafana-dashboard.json'))
const expressionsOfDashboard = dashboard.panels.flatMap(({ targets }) =>
  targets.map(({ expr }) => expr),
)

function rules(): Rules['groups'][number]['rules'] {
  const [{ groups }] = yamlDocuments<Rules>(read('prometheus-rules.yml')) as [Rules]
  return groups.flatMap((group) => group.rules)
}

function read(name: string): string {
  return readFileSync(new URL(name, folder), 'utf8')
}

/** The names of metrics in a text, wherever they are. */
function metricsIn(text: string): string[] {
  return text.match(/postbote_\w+/g) ?? []
}

test('every metric of the rules and of the dashboard is on /metrics, with the labels and values that they select', async (t) => {
  const server = await startServer(t)
  const { text } = await server.admin('GET', '/metrics')
  if (programObstacle('promtool') === false) promtool(['check', 'metrics'], text)
  const shown = new Set(text.match(/^postbote_\w+/gm))
  const named = [read('prometheus-rules.yml'), read('grafana-dashboard.json')].flatMap(metricsIn)
  assert(named.length > 40)
  assert.deepEqual(
    named.filter((name) => !shown.has(name)),
    [],
  )
  const expressions = [...expressionsOfDashboard, read('prometheus-rules.yml')].join('\n')
  const selected = [...expressions.matchAll(/(postbote_\w+)\{([^}]*)\}/g)].flatMap(
    ([, name = '', labels = '']) =>
      [...labels.matchAll(/(\w+)(!?=~?)"([^"]*)"/g)]
        .filter(([, label]) => label !== 'instance')
        .map(([, label = '', , value = '']) => `${name}{${label}="${value}"}`),
  )
  assert(selected.length > 2)
  assert.deepEqual(
    selected.filter((series) => !text.includes(`\n${series} `)),
    [],
  )
  const grouped = [...expressions.matchAll(/by \((\w+)\) \(\w*\(?(postbote_\w+)/g)]
    .filter(([, label]) => label !== 'instance')
    .map(([, label = '', name = '']) => `${name}{${label}="`)
  assert(grouped.length > 2)
  assert.deepEqual(
    grouped.filter((series) => !text.includes(`\n${series}`)),
    [],
  )
})

test('every counter is shown as a rate or an increase, and no gauge is', async () => {
  const expressions = [...expressionsOfDashboard, ...expressionsOfRules()]
  for (const expression of expressions) {
    for (const [, before = '', name = ''] of expression.matchAll(/(\w*\(?)(postbote_\w+)/g)) {
      const isRate = /^(?:rate|increase)\($/.test(before)
      assert.equal(isRate, /_(?:total|bucket)$/.test(name), `${name} in ${expression}`)
    }
  }
})

function expressionsOfRules(): string[] {
  return [...read('prometheus-rules.yml').matchAll(/^ +expr: (.*)$/gm)].map(([, expr = '']) => expr)
}

test('the rules are YAML, and each has a name of its own, a sentence and what to do', {
  skip: yamlObstacle(),
}, () => {
  const all = rules()
  assert(all.length > 10)
  assert.equal(new Set(all.map(({ alert }) => alert)).size, all.length)
  for (const { alert, expr, annotations } of all) {
    assert.match(alert, /^Postbote\w+$/)
    assert(expr.includes('postbote'), alert)
    assert.match(annotations.summary, /\.$/, alert)
    assert.match(annotations.description, /\.$/, alert)
  }
  assert.deepEqual(
    all.map(({ expr }) => expr),
    expressionsOfRules(),
  )
})

test('no sentence of a rule has digits that nobody needs', { skip: yamlObstacle() }, () => {
  const computed = /\b(?:increase|rate|deriv|predict_linear|histogram_quantile)\(/
  for (const { alert, expr, annotations } of rules()) {
    if (computed.test(expr)) assert.doesNotMatch(annotations.summary, /\$value }}/, alert)
  }
})

/** Runs promtool; throws with what it said if it failed. */
function promtool(args: readonly string[], input?: string): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
}

test('each alert fires on the series that it is for, and not on those beside them', {
  skip: programObstacle('promtool') || yamlObstacle(),
}, async (t) => {
  assert.deepEqual(
    rules().map(({ alert }) => alert),
    Object.keys(alertCases),
  )
  const cases = Object.entries(alertCases).flatMap(([alert, { fires, isQuiet }]) => [
    { alert, series: fires, instance: `${alert}/fires`, samples: [{ labels: '{}', value: 1 }] },
    { alert, series: isQuiet, instance: `${alert}/is-quiet`, samples: [] },
  ])
  // One test for all: each instance has the series of one case, and each rule is about its own instance only.
  const together = {
    interval: '1m',
    input_series: cases.flatMap(({ series, instance }) =>
      Object.entries(series).map(([name, values]) => ({ series: at(instance, name), values })),
    ),
    promql_expr_test: cases.map(({ alert, instance, samples }) => ({
      expr: `count(${at(instance, `ALERTS{alertname="${alert}",alertstate="firing"}`)})`,
      eval_time: `${evaluatedAfterMinutes}m`,
      exp_samples: samples,
    })),
  }
  const file = join(temporaryDirectory(t), 'rules.test.json') // JSON is YAML, too.
  const rule_files = [fileURLToPath(new URL('prometheus-rules.yml', folder))]
  writeFileSync(file, JSON.stringify({ rule_files, evaluation_interval: '1m', tests: [together] }))
  promtool(['test', 'rules', file])
})

/** A series with the label `instance`. */
function at(instance: string, series: string): string {
  const [name = '', labels] = series.split(/[{}]/)
  return `${name}{${labels === undefined ? '' : `${labels},`}instance="${instance}"}`
}

test('Prometheus takes the scrape configuration, and the key that its comment makes reads the metrics', {
  skip: programObstacle('promtool') || yamlObstacle(),
}, async (t) => {
  const server = await startServer(t)
  const text = read('prometheus-scrape.yml')
  const [, command = ''] = /; postbote (.*) > \S+\)$/m.exec(text) ?? []
  const made = await outputOf([
    ...command.split(' '),
    `--dir=${server.dir}`,
    `--url=${server.privateUrl}`,
    `--key-file=${join(server.dir, 'admin.key')}`,
  ])
  const key = join(temporaryDirectory(t), 'key')
  writeFileSync(key, made, { mode: 0o600 })
  const here = text.replaceAll('/etc/prometheus/postbote.key', key)
  const file = join(temporaryDirectory(t), 'prometheus.yml')
  writeFileSync(file, here)
  promtool(['check', 'config', file])
  const [scrape] = yamlDocuments<Scrape>(here)
  const [config] = scrape?.scrape_configs ?? assert.fail()
  assert(rules().some(({ expr }) => expr.includes(`job="${config.job_name}"`)))
  const { type, credentials_file: credentials } = config.authorization
  const headers = { authorization: `${type} ${readFileSync(credentials, 'utf8').trim()}` }
  const { status } = await fetch(server.privateUrl + config.metrics_path, { headers })
  assert.equal(status, 200)
})

test('the commands and types of events that the rules name exist', () => {
  const text = read('prometheus-rules.yml')
  const names = commandTable.map(({ name }) => name)
  const named = [...text.matchAll(/`postbote ([a-z -]*[a-z])/g)].map(([, command = '']) => command)
  assert(named.length > 5)
  for (const command of named) {
    const isKnown = names.some((name) => command === name || command.startsWith(`${name} `))
    assert(isKnown, command)
  }
  for (const [, type] of text.matchAll(/--type ([\w.]+)/g)) {
    assert(
      operatorEventTypes.some((known) => known === type),
      type,
    )
  }
})

test('the panels of the dashboard do not overlap, and each has a query', () => {
  const cells = new Set<string>()
  for (const { title, gridPos, targets } of dashboard.panels) {
    assert(targets.length > 0, title)
    assert(gridPos.x + gridPos.w <= 24, title)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert(!cells.has(`${x},${y}`), title)
        cells.add(`${x},${y}`)
      }
    }
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length)
})
