/**
 * The Dockerfile, read as far as this project uses its language. The image of a release and its Debian package are made from
 * the same lines as the image that a container engine builds, without one.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Instruction {
  readonly name: string
  readonly value: string
}

export interface Copy {
  /** Relative to the folder that the build stage works in, which is a built checkout. */
  readonly source: string
  /** Relative to the working directory of the image, unless it is absolute. */
  readonly target: string
}

const built = '/build/'

export class Dockerfile {
  readonly instructions: readonly Instruction[]
  readonly lastStage: readonly Instruction[]

  /** @param root The checkout that has it. */
  constructor(root: string) {
    const text = readFileSync(join(root, 'Dockerfile'), 'utf8').replace(/\\\n/g, '')
    this.instructions = [...text.matchAll(/^([A-Z]+) (.*)$/gm)].map(
      ([, name = '', value = '']) => ({ name, value }),
    )
    const last = this.instructions.findLastIndex(({ name }) => name === 'FROM')
    this.lastStage = this.instructions.slice(last)
  }

  /** The value of an instruction of the last stage, which has it once. */
  value(name: string): string {
    const found = this.lastStage.filter((instruction) => instruction.name === name)
    assert.equal(found.length, 1, name)
    return found[0]?.value ?? ''
  }

  /** The words of an instruction that is a command. */
  command(name: string): readonly string[] {
    const [, list = ''] = /(\[.*\])$/.exec(this.value(name)) ?? []
    return JSON.parse(list)
  }

  /** The environment that the image sets. */
  get env(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.value('ENV')
        .split(/ +/)
        .map((pair) => pair.split('=')),
    )
  }

  /** What the last stage copies. */
  get copies(): readonly Copy[] {
    return this.lastStage
      .filter(({ name }) => name === 'COPY')
      .flatMap(({ value }) => {
        const [from, ...paths] = value.split(/ +/)
        const target = paths.pop() ?? ''
        assert.equal(from, '--from=build')
        return paths.map((path) => {
          assert(path.startsWith(built), path)
          const source = path.slice(built.length)
          const isInto = target.endsWith('/')
          return { source, target: isInto ? join(target, source.replace(/.*\//, '')) : target }
        })
      })
  }
}
