"""What any task of the provider needs while it runs: errors, the plan from XCom, frozen state, templates."""
