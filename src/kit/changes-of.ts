import { fail } from 'node:assert'

/** For each state of something, the states that may follow it. */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>

/**
 * Asserts the changes of a state. Whoever holds the state changes it in one place, by the function that this returns.
 *
 * @returns a function that returns `to`. Any change that the table does not have is a bug and throws an AssertionError.
 */
export function changesOf<State extends string>(
  transitions: Transitions<State>,
): (from: State, to: State) => State {
  return (from, to) => (transitions[from].includes(to) ? to : fail(`from ${from} to ${to}`))
}
