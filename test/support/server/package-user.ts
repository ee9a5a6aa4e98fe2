/** Another project that uses this package: a directory with its files and its node_modules. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../kit/child-process.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'

export const root = fileURLToPath(new URL('../../../../', import.meta.url))
const compiler = join(root, 'node_modules/typescript/bin/tsc')

export class PackageUser {
  readonly directory: string

  /** Creates a project that has only the types of Node. */
  constructor(t: TestContext) {
    this.directory = temporaryDirectory(t)
    this.write('package.json', '{"type":"module"}')
    this.link('@types/node', join(root, 'node_modules/@types/node'))
  }

  path(name: string): string {
    return join(this.directory, name)
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text)
  }

  /** Links a package from elsewhere into the project. */
  link(name: string, target: string): void {
    const place = this.path(`node_modules/${name}`)
    mkdirSync(dirname(place), { recursive: true })
    symlinkSync(target, place)
  }

  /** Rejects if the file does not compile with the strictest settings. */
  async compile(name: string, module: 'nodenext' | 'bundler'): Promise<void> {
    const compilerOptions = {
      target: 'es2022',
      ...(module === 'bundler' ? { module: 'esnext', moduleResolution: 'bundler' } : { module }),
      strict: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
      types: ['node'],
      noEmit: true,
    }
    this.write('tsconfig.json', JSON.stringify({ compilerOptions, files: [name] }))
    await run(process.execPath, [compiler, '-p', this.directory])
  }

  /** Returns the output of a program; rejects if the program fails. */
  async run(name: string): Promise<string> {
    const { stdout } = await run(process.execPath, [this.path(name)])
    return stdout.trim()
  }
}
