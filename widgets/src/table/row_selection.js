// The selected row of a table: its detail on show, and the row itself brought into view.

export class RowSelection {
  /** @param {import("./table_view.js").TableView} view */
  constructor(view) {
    this.view = view;
    this.isJump = false;
  }

  /** Jumps to a row by a link in the detail pane. @param {number} id */
  go(id) {
    this.isJump = true;
    this.view.select(id);
  }

  close() {
    this.view.select(null);
    this.view.grid.activeCell()?.focus({ preventScroll: true });
  }

  async show() {
    const { view } = this;
    const id = view.selected;
    const isJump = this.isJump;
    this.isJump = false;
    view.grid.selected = id;
    view.grid.draw();
    if (id === null) return view.detail.hide();
    const detail = await view.ask("detail", { kind: "detail", [view.kind.key]: id });
    if (!detail) return;
    view.detail.show(detail, isJump);
    await this.reveal();
  }

  /** Brings the selected row into view, out of a closed group if it is in one, or says that the filters hide it. */
  async reveal() {
    const { view } = this;
    const id = view.selected;
    let position = view.grid.body.positionOf(id) ?? null;
    if (position === null) {
      const answer = await this.ask(id);
      if (!answer) return;
      position = answer.position;
      if (answer.closed !== null) {
        await view.choose(-1 - answer.closed);
        position = (await this.ask(id))?.position ?? null;
      }
    }
    view.detail.showHidden(position === null);
    if (position !== null) {
      view.grid.active.row = position;
      view.grid.reveal(position);
      view.grid.draw();
    }
  }

  /** @param {number} id */
  ask(id) {
    const { view } = this;
    return view.ask("position", { kind: "position", [view.kind.key]: id, query: view.asked.query });
  }
}
