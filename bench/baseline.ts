/**
 * The baseline of the regression gate, bench/results/baseline.json: the ratios of a build that was found good. It is
 * committed, so a change of it is seen in review.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { BaselineRatio, RatioChange } from './compare-ratios.ts'

interface SavedBaseline {
  readonly cases: readonly BaselineRatio[]
}

export class Baseline {
  readonly #file: string
  readonly ratios: readonly BaselineRatio[]

  private constructor(file: string, ratios: readonly BaselineRatio[]) {
    this.#file = file
    this.ratios = ratios
  }

  /** A file that does not exist is a baseline without cases. */
  static async read(file: string): Promise<Baseline> {
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '{"cases":[]}'
      throw error
    })
    const saved: SavedBaseline = JSON.parse(text)
    return new Baseline(file, saved.cases)
  }

  /** Writes it with the ratios that were measured in place of the earlier ones; cases that failed keep theirs. */
  async update(changes: readonly RatioChange[], commit: string): Promise<void> {
    const measured = changes.flatMap(({ name, against, now, verdict }): BaselineRatio[] =>
      now === undefined || verdict === 'failed'
        ? []
        : [{ name, against, cpuRatio: Number(now.toFixed(3)), commit }],
    )
    const others = this.ratios.filter(({ name }) => measured.every((each) => each.name !== name))
    const cases = [...others, ...measured].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const saved: SavedBaseline = { cases }
    await mkdir(dirname(this.#file), { recursive: true })
    await writeFile(this.#file, `${JSON.stringify(saved, null, 1)}\n`)
  }
}
