/** A path in the file: keys of maps, and indices of lists from 0. */
export type ConfigPath = readonly (string | number)[];

/** A mistake in the file. Never contains a value of the file, which may be secret. */
export interface SettingProblem {
  readonly path: ConfigPath;
  readonly message: string;
  /** A known name that is similar to the written one. */
  readonly suggestion?: string;
}

export function withSuggestion(
  problem: SettingProblem,
  suggestion: string | undefined,
): SettingProblem {
  return suggestion === undefined ? problem : { ...problem, suggestion };
}
