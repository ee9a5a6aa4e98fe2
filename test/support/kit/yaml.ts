/** Reads YAML with Python's parser: Node.js has none. */
import { spawnSync } from 'node:child_process'

const program = `
import json, sys, yaml
print(json.dumps([each for each in yaml.safe_load_all(sys.stdin.read()) if each is not None]))
`

/** Why YAML cannot be read here; false if it can. */
export function yamlObstacle(): string | false {
  const { status } = spawnSync('/usr/bin/python3', ['-c', 'import yaml'])
  return status === 0 ? false : 'python3-yaml is not installed: ./scripts/install-test-tools'
}

/** Returns the documents of a YAML text. Throws if it is not YAML. */
export function yamlDocuments<Document>(text: string): Document[] {
  const { status, stdout, stderr } = spawnSync('/usr/bin/python3', ['-c', program], {
    input: text,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`no YAML: ${stderr}\n${text}`)
  return JSON.parse(stdout) as Document[]
}
