/** Where in the file: keys of maps, and places in lists from 0. */
export type ConfigPath = readonly (string | number)[];

/** Something an operator must change in the file. Never holds a value of the file: it may be secret. */
export interface SettingProblem {
  readonly path: ConfigPath;
  readonly message: string;
  /** A known name that is close to what was written. */
  readonly suggestion?: string;
}
