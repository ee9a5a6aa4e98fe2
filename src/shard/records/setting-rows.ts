/**
 * What the audit may show of what is stored (private-api/setting-changes.ts). Each record has a table with a row for each of its
 * fields, beside them: a new field does not compile before it is decided there what may be shown of it. Of a secret, it is only said
 * that it changed.
 */

/** A value as it is shown; null: it is not set. */
export type Shown = string | number | readonly (string | number)[] | null

export interface Setting {
  readonly shown: Shown
  /** What else tells whether it has changed, and is never shown. */
  readonly hidden?: unknown
}

/** By their names in the API. */
export type Settings = Readonly<Record<string, Setting>>

/** The settings in each field of a record. */
export type SettingRows<Stored> = {
  readonly [Name in keyof Stored]-?: (stored: NonNullable<Stored[Name]> | undefined) => Settings
}

/** The row of a field that is no setting. */
export const none = (): Settings => ({})

/** Makes the row of a field that is shown as it is. */
export function shown<Value extends string | number>(
  name: string,
): (value: Value | readonly Value[] | undefined) => Settings {
  return (value) => ({ [name]: { shown: value ?? null } })
}

/** Makes the row of a secret. */
export function secret(name: string): (value: unknown) => Settings {
  return (value) => ({ [name]: { shown: null, hidden: value } })
}

/** Returns the settings of a record. What is missing of it is not set. */
export function settingsIn<Stored>(rows: SettingRows<Stored>, stored: Partial<Stored>): Settings {
  const all: Record<string, Setting> = {}
  for (const name in rows) Object.assign(all, rows[name](stored[name] ?? undefined))
  return all
}
