#!/usr/bin/env node
/**
 * The entry of the command `postbote`. It is as small as possible, and loads the program only after it has refused the
 * inspector: until then, a SIGUSR1 opens it, and reading the program takes some 50 ms.
 */
import './cli/serve/refuse-inspector.ts'
import { entryFiles } from './entry-files.ts'

await import(entryFiles.program.href)
