/**
 * What hooks into a room: the room declares what it calls (its hooks.ts), and a module has those of the hooks that it needs. A
 * hook that returns no promise is synchronous and does not throw.
 */

type HookOf<Module, Name extends keyof Module> = Extract<Module[Name], (...args: never) => unknown>

export class Modules<Module extends object> {
  /** In the order in which they are called. It is made empty, because modules need the rooms that call them. */
  readonly list: Module[] = []

  /** Calls a hook of all modules that have it. Returns what they return, in their order. */
  each<Name extends keyof Module>(
    name: Name,
    ...args: Parameters<HookOf<Module, Name>>
  ): ReturnType<HookOf<Module, Name>>[] {
    const results: ReturnType<HookOf<Module, Name>>[] = []
    for (const module of this.list) {
      const hook: unknown = module[name]
      if (typeof hook === 'function') results.push(Reflect.apply(hook, module, args))
    }
    return results
  }

  /** Calls a hook that returns fields. Returns them in one object. */
  fieldsOf<Name extends keyof Module>(
    name: Name,
    ...args: Parameters<HookOf<Module, Name>>
  ): object {
    return this.each(name, ...args).reduce<object>((all, fields) => Object.assign(all, fields), {})
  }
}
