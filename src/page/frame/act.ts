/**
 * What the reader does by one call, told in one place by the id of the call: the button, what is asked before, and what is said
 * afterward. The compiler knows the fields and the result.
 */
import { buttonElement } from '../elements/element.ts'
import type { Question } from '../elements/confirm-dialog.ts'
import { errorText } from '../elements/messages.ts'
import type { PageCall, PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import type { ResultShape } from './shapes.ts'

export interface Act<Id extends PageCall> {
  /** The text of the button, here and in the question. */
  readonly label: string
  /** What it acts on, if the button is one of several in a list. */
  readonly of?: string
  readonly input: () => PageInput<Id>
  readonly question: () => Omit<Question, 'action'> | Promise<Omit<Question, 'action'>>
  /** Says what was done. Absent: what follows says it. */
  readonly said?: (result: ResultShape<Id>) => string
  /** Shows what follows. */
  readonly after?: (result: ResultShape<Id>) => unknown
}

/** Makes the button of an act that is asked about before. */
export function actButton<Id extends PageCall>(
  context: PageContext,
  id: Id,
  act: Act<Id>,
): HTMLButtonElement {
  const { label, of } = act
  const onclick = (): void => {
    perform(context, id, act).catch((error: unknown) => context.toast(errorText(error)))
  }
  const style = of === undefined ? 'danger' : 'danger small'
  return buttonElement(label, onclick, of === undefined ? { style } : { style, of })
}

async function perform<Id extends PageCall>(
  { api, ask, toast }: PageContext,
  id: Id,
  { label, input, question, said, after }: Act<Id>,
): Promise<void> {
  const asked = await question()
  if (!(await ask({ isDanger: true, ...asked, action: label }))) return
  const result = await api.call(id, input())
  if (said !== undefined) toast(said(result))
  await after?.(result)
}
