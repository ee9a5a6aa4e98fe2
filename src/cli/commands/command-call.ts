/** A call of a command whose arguments were parsed: typed access to their values, by the rows that declare them. */
import { type Config, ConfigError, type ConfigReader, shown } from '../../config/config.ts'
import { type Kind, refused } from '../../config/config-values.ts'

/** The row of an option or an argument. */
export interface ValueRow<T> {
  readonly name: string
  readonly kind: Kind<T>
  readonly default?: string
}

export interface CommandCallParts {
  /** The texts that were given, by the names of options and arguments. */
  readonly texts: ReadonlyMap<string, string>
  /** Those that are options of the server, as its flags. */
  readonly serverFlags: readonly string[]
  readonly configOf: (argv: readonly string[], of?: ConfigReader) => Config
}

export class CommandCall {
  readonly #parts: CommandCallParts

  constructor(parts: CommandCallParts) {
    this.#parts = parts
  }

  /**
   * Returns the value of an option or an argument, or else its default.
   *
   * @throws ConfigError if the text is none of its values.
   */
  get<T>(row: ValueRow<T>): T | undefined {
    const text = this.#parts.texts.get(row.name) ?? row.default
    return text === undefined ? undefined : valueOf(row, text)
  }

  /**
   * Returns the value of an option or an argument that must be there.
   *
   * @throws ConfigError if it was not given, or if its text is none of its values.
   */
  need<T>(row: ValueRow<T>): T {
    const text = this.#parts.texts.get(row.name) ?? row.default
    if (text !== undefined) return valueOf(row, text)
    throw new ConfigError([`${shownName(row)}: expected ${row.kind.expected}, got none`])
  }

  /** Returns whether a switch was given. */
  has(row: ValueRow<boolean>): boolean {
    return this.get(row) === true
  }

  /** Returns the options of the server: those that were given, and those of the environment and the file. */
  config(of: ConfigReader = 'server'): Config {
    return this.#parts.configOf(this.#parts.serverFlags, of)
  }
}

function valueOf<T>(row: ValueRow<T>, text: string): T {
  const value = row.kind.parse(text)
  if (value !== refused) return value
  const { expected, isSecret = false } = row.kind
  const why = isSecret ? undefined : row.kind.whyRefused?.(text)
  const got = isSecret ? 'something else' : shown(text)
  const end = why === undefined ? '' : `, ${why}`
  throw new ConfigError([`${shownName(row)}: expected ${expected}, got ${got}${end}`])
}

function shownName({ name }: { readonly name: string }): string {
  return /^[<[]/.test(name) ? name : `--${name}`
}
