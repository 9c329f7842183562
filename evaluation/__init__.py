"""Long measurements whose results docs/ states: tasks that can be stopped and resumed."""
