import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../../src/config/config.ts'
import { environmentName, optionRows } from '../../../src/config/config-options.ts'

function config(env: Readonly<Record<string, string>>): ReturnType<typeof parseConfig> {
  return parseConfig({ argv: [], env, readFile: () => '{}' })
}

/** What Kubernetes makes for a Service. */
function linksOf(service: string, address: string, ports: Readonly<Record<string, number>>) {
  const name = service.toUpperCase().replaceAll('-', '_')
  const host = address.includes(':') ? `[${address}]` : address
  const [first] = Object.values(ports)
  const links: Record<string, string> = {
    [`${name}_SERVICE_HOST`]: address,
    [`${name}_SERVICE_PORT`]: `${first}`,
    [`${name}_PORT`]: `tcp://${host}:${first}`,
  }
  for (const [port, number] of Object.entries(ports)) {
    const at = `${name}_PORT_${number}_TCP`
    links[`${name}_SERVICE_PORT_${port.toUpperCase().replaceAll('-', '_')}`] = `${number}`
    Object.assign(links, {
      [at]: `tcp://${host}:${number}`,
      [`${at}_PROTO`]: 'tcp',
      [`${at}_PORT`]: `${number}`,
      [`${at}_ADDR`]: address,
    })
  }
  return links
}

test('the variables that Kubernetes makes for Services are ignored, whatever their names add', () => {
  const ports = { bot: 8081, private: 8082, 'private-listen-2': 9 }
  const services = ['', '-private', '-bot', '-http', '-admin', '-7', '-service', '-port', '-a-b-c']
  for (const service of services) {
    for (const address of ['10.96.0.11', 'fd00:10:96::b']) {
      const links = linksOf(`postbote${service}`, address, ports)
      assert.deepEqual(config(links), config({}), service)
    }
  }
})

test('a Service of any name takes the place of no option', () => {
  for (const [, { name }] of optionRows) {
    const end = /^(.*)-port$/.exec(name)?.[1]
    if (end === undefined) continue
    const links = linksOf(`postbote-${end}`, '10.0.0.1', { x: 1 })
    assert(environmentName(name) in links)
    assert.deepEqual(config(links), config({}), name)
    assert.notDeepEqual(config({ [environmentName(name)]: '4711' }), config({}))
  }
})

test('a typing error is refused, also if its name is almost that of such a variable', () => {
  const wrong = {
    POSTBOTE_HTTP_PRT: '8081',
    POSTBOTE_SERVICE_PORT: 'http',
    POSTBOTE_SERVICE_HOST: 'example',
    POSTBOTE_PORT: '8081',
    POSTBOTE_HTTP_PORT: 'tcp://example:8081',
    POSTBOTE_ADMIN_PORT: 'tcp://10.0.0.1',
    POSTBOTE_PORT_8081_TCP_ADR: '10.0.0.1',
    POSTBOTE_PORT_8081_TCP_PROTO: 'http',
    POSTBOTE_SERVICE: '1',
  }
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(() => config({ [name]: value }), new RegExp(`${name}: `), name)
  }
})
