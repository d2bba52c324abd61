import { dirname, join, normalize } from "node:path";

/** One import of a file of `src/`. */
export interface Import {
  readonly path: string;
  /** A path from the root of the project, or the name of a module. */
  readonly target: string;
  readonly isModule: boolean;
  readonly isType: boolean;
}

const pattern = /^(?:import|export)\s+(type\s)?(?:[^;"]*?from\s+)?"([^"]+)"|import\("([^"]+)"\)/gm;

/** What the file imports, types included. */
export function importsOf(path: string, text: string): readonly Import[] {
  return [...text.matchAll(pattern)].map(([, typeOnly, fromSource, dynamicSource]) => {
    const source = fromSource ?? dynamicSource ?? "";
    const isModule = !source.startsWith(".");
    const target = isModule ? source : normalize(join(dirname(path), source));
    return { path, target, isModule, isType: typeOnly !== undefined };
  });
}
