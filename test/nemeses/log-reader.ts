/** Reads the logs of all nodes: how many warnings and errors of which kind each event has led to. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Server } from '../support/server/server.ts'

const warnLevel = 40
const eviction = 'a node that stood still was removed from the database'

interface Source {
  readonly name: string
  readonly server: Server
  read: number
}

export class LogReader {
  /** By event, level and message. */
  readonly counts = new Map<string, number>()
  readonly #sources: Source[] = []
  #event = 'start'
  #evictions = 0

  add(name: string, server: Server): void {
    this.#sources.push({ name, server, read: 0 })
  }

  /** What is logged from now on follows from this event. */
  begin(event: string): void {
    this.#read()
    this.#event = event
    this.#evictions = 0
  }

  /** Returns how many nodes were evicted since `begin`. */
  evictions(): number {
    this.#read()
    return this.#evictions
  }

  /** Writes the outputs of all lives of all nodes into a directory. */
  write(directory: string): void {
    for (const [nth, { name, server }] of this.#sources.entries()) {
      writeFileSync(join(directory, `${nth}-${name}.log`), server.output())
    }
  }

  #read(): void {
    for (const source of this.#sources) {
      const output = source.server.output()
      const text = output.slice(source.read)
      source.read = output.length
      for (const line of text.split('\n')) this.#note(line)
    }
  }

  #note(line: string): void {
    if (!line.startsWith('{')) {
      if (line !== '') this.#count(`output ${line.slice(0, 200)}`)
      return
    }
    const { level, msg, error }: { level: number; msg: string; error?: unknown } = JSON.parse(line)
    if (msg === eviction) this.#evictions++
    if (level < warnLevel) return
    const cause =
      typeof error === 'string' ? `: ${error.replaceAll(/\d+/g, '#').slice(0, 160)}` : ''
    this.#count(`${level > warnLevel ? 'error' : 'warning'} ${msg}${cause}`)
  }

  #count(text: string): void {
    const key = `${this.#event} | ${text}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
  }
}
