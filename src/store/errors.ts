/** The database cannot be used now: locked, gone, full or broken. Trying again may help. */
export class StorageUnavailable extends Error {
  override readonly name: string = "StorageUnavailable";
}

/** Something with this id or unique name is there already. */
export class AlreadyExists extends Error {
  override readonly name = "AlreadyExists";
}

/** The entity was changed, or removed, since it was read. */
export class RevisionConflict extends Error {
  override readonly name = "RevisionConflict";
}

/** Others refer to the entity, so it cannot be removed. */
export class StillInUse extends Error {
  override readonly name = "StillInUse";
}

/** The place in a list is none that a list gave. */
export class InvalidCursor extends Error {
  override readonly name = "InvalidCursor";
}

/** The database will never take these rows, whatever its state: a fault of the data. */
export class RefusedRows extends Error {
  override readonly name = "RefusedRows";
}

/** Trying again does not help with this database. */
export class UnusableDatabase extends StorageUnavailable {
  override readonly name: string = "UnusableDatabase";
}

/** A newer version of Sluice wrote the database; that version can use it. */
export class SchemaTooNew extends UnusableDatabase {
  override readonly name = "SchemaTooNew";
}

/** The database is not the one that belongs to the rest of the installation. */
export class WrongDatabase extends UnusableDatabase {
  override readonly name = "WrongDatabase";
  /** What is wrong with it, to be read behind "the database". */
  readonly what: string;

  constructor(path: string, what: string, advice: string) {
    super(`the database ${path} ${what}. ${advice}`);
    this.what = what;
  }
}
