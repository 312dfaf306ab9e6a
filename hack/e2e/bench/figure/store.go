package figure

import (
	"encoding/json"
	"os"
)

// Save keeps rows for another program, which prints them in one table with its
// own.
func Save(path string, rows []Row) error {
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// Load reads what Save has kept.
func Load(path string) (rows []Row, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(text, &rows)
}
